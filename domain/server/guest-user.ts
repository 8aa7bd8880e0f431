/** Users of guests, whom people sign in as. Their names are given to `ssh` and to shells: nothing in one is an option
 *  or a command. Linux has no longer ones. */
export const GUEST_USER_LENGTH_MAXIMUM = 32
export const GUEST_USER_PATTERN = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/
