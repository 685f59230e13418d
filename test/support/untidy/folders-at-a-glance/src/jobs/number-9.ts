/** Number 9. */
