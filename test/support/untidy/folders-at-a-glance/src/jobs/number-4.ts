/** Number 4. */
