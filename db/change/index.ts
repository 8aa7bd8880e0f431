/** Changes in progress: intents before the commit point, and recent writes. */
export {
  type ChangeIntent,
  hasIntent,
  isHeldByOthers,
  listBeingChanged,
  listIntents,
  recordIntent,
  recordIntents,
  closeIntent,
  closeIntents,
  ensureIntent,
  takeIntent,
} from './intents.ts'
export { withdrawing } from './withdraw.ts'
export { type RecentWrite, listRecentWrites, recordWrites } from './recent-writes.ts'
