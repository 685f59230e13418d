/** Number 10. */
