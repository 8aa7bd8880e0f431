/** The credit of every new account. */
export const SIGN_UP_CREDIT_CENTS = 24_900
export const SIGN_UP_CREDIT_DAYS = 60
