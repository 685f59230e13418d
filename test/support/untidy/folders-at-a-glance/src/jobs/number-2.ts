/** Number 2. */
