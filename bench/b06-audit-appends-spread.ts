/** Audit entries, spread over 20 accounts. */
import { openAppends, VERIFY_HELD_BY, VERIFY_LIMITS } from './audit-appends.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B06 audit appends, spread',
  question: 'entries appended to hash chains, spread over 20 accounts, 64 in flight',
  subjectName: 'sealed entries',
  peerName: 'single-row inserts',
  unit: 'entries',
  goal: 0.8,
  limits: VERIFY_LIMITS,
  heldBy: VERIFY_HELD_BY,
  tier: 'database',
  open: (round) => openAppends(round, 20),
}
