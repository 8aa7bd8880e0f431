/** The holder names of a server's quotas, names and addresses. */
export const serverHolder = (serverId: string): `server/${string}` => `server/${serverId}`
/** Holder of the claims of a server in another zone until its cutover there. */
export const arrivingServerHolder = (serverId: string): string => `server_arriving/${serverId}`
/** The first boot storage is named after its server; a later one keeps that holder name. */
export const storageHolder = (storageId: string): `storage/${string}` => `storage/${storageId}`
