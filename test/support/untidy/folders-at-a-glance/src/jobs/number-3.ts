/** Number 3. */
