/** Placement: the node of each server, and the room of each node. */
export { listBestNodes } from './best-nodes.ts'
export { countTenants, findDedication, forgetNode, listTenants, type MirroredNode, mirrorNode } from './nodes.ts'
export {
  type Placement,
  addRoom,
  claimBestRoom,
  claimFirstPlacements,
  claimPlacement,
  columnsOf,
  findCandidate,
  findPlacement,
  listAllCandidates,
  listCandidates,
  listPlaced,
  lockPlacement,
  releasePlacement,
  releaseRoom,
  roomOf,
  wholeRoomOf,
} from './placement.ts'
