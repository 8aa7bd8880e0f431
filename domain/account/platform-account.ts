/** The account of the platform itself: what it runs for itself belongs to it, as servers of host clusters do. It has no
 *  people, is asked for no money, and is refused nothing for the lack of either. */
export const PLATFORM_ACCOUNT_ID = '7f000000-0000-8000-8000-000000000001'

export const isPlatformAccount = (accountId: string): boolean => accountId === PLATFORM_ACCOUNT_ID
