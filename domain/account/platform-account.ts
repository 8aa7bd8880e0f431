/** The account of the platform itself. Resources that the platform runs for itself belong to it, such as the servers of
 *  host clusters. It has no people and is not billed, and it is refused nothing for that reason. */
export const PLATFORM_ACCOUNT_ID = '7f000000-0000-8000-8000-000000000001'

export const isPlatformAccount = (accountId: string): boolean => accountId === PLATFORM_ACCOUNT_ID
