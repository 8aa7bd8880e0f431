/** Changes on their way: intents before the commit point, and what was written lately. */
export {
  type ChangeIntent,
  hasIntent,
  listIntents,
  recordIntent,
  recordIntents,
  closeIntent,
  closeIntents,
  takeIntent,
} from './intents.ts'
export { type RecentWrite, listRecentWrites, recordWrites } from './recent-writes.ts'
