/** Under which names a server holds quotas, names and addresses. */
export const serverHolder = (serverId: string): string => `server/${serverId}`
/** What a server that goes to another zone holds there until it has arrived. */
export const arrivingServerHolder = (serverId: string): string => `server_arriving/${serverId}`
/** A boot storage has the name of its server, and its own holding: it may outlive the server one day. */
export const storageHolder = (storageId: string): string => `storage/${storageId}`
