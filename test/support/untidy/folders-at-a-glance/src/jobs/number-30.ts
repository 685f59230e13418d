/** Number 30. */
