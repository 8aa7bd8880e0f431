/** Audit entries, one hot account. */
import { openAppends, VERIFY_HELD_BY, VERIFY_LIMITS } from './audit-appends.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B06 audit appends',
  question: 'entries appended to hash chains, one hot account, 64 in flight',
  subjectName: 'sealed entries',
  peerName: 'single-row inserts',
  unit: 'entries',
  goal: 1,
  limits: VERIFY_LIMITS,
  heldBy: VERIFY_HELD_BY,
  tier: 'database',
  open: (round) => openAppends(round, 1),
}
