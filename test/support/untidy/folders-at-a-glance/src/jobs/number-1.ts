/** Number 1. */
