export { serverHolder, storageHolder } from './holders.ts'
/** Claims of servers: names, addresses, quotas, room on nodes; also while they move or change their size. */
export {
  type ClaimsReading,
  type ServerClaims,
  type ServerDemand,
  type ServerId,
  accountExists,
  claimServer,
  claimServers,
  findServerClaims,
  batchKeyOf,
  listManagedServers,
  listServersWithClaims,
  openClaimsReading,
  releaseServer,
  renumberServer,
} from './claims.ts'
export { type TargetRequest, releaseTarget, requireTarget, reserveTarget, cutOverPlacement } from './moves.ts'
export { acceptSizeChange, beginSizeChange, endSizeChange } from './sizes.ts'
