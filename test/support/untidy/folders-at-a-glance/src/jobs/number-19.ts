/** Number 19. */
