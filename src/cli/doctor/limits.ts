/** Timeout in seconds for each group of parallel requests to a member. */
export const READ_TIMEOUT = 5;

/** Timeout in seconds for the listing of all locks, which may be long. */
export const LISTING_TIMEOUT = 15;
