/** Placement: which node each server is on, and what room each node has. */
export { listBestNodes } from './best-nodes.ts'
export { countTenants, forgetNode, listTenants, mirrorNode } from './nodes.ts'
export {
  type Placement,
  addRoom,
  claimFirstPlacements,
  claimPlacement,
  columnsOf,
  findCandidate,
  findPlacement,
  releaseRoom,
  listAllCandidates,
  listCandidates,
  listPlaced,
  releasePlacement,
  roomOf,
  claimBestRoom,
} from './placement.ts'
