/** Accepted creations over HTTP, one hot account, against bare node:http with one insert. */
import { openCreations } from './creations.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B02 create servers, one hot account',
  question: 'POST /v1/servers to 202 over HTTP, one hot account, 64 in flight',
  subjectName: 'accepted creations',
  peerName: 'bare node:http with one PostgreSQL insert',
  unit: 'servers',
  goal: 0.25,
  heldBy:
    'a creation is two transactions with about twenty statements in place of one, and a Kubernetes write that is ' +
    'validated, tracked and durable; those of one account share transactions.',
  tier: 'database',
  open: (round) => openCreations(round, 1),
}
