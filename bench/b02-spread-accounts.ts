/** Accepted creations over HTTP, spread over 20 accounts, against bare node:http with one insert. */
import { openCreations } from './creations.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B02 create servers, spread over 20 accounts',
  question: 'POST /v1/servers to 202 over HTTP, spread over 20 accounts, 64 in flight',
  subjectName: 'accepted creations',
  peerName: 'bare node:http with one PostgreSQL insert',
  unit: 'servers',
  goal: 0.5,
  heldBy:
    'creations of different accounts share no transaction: each has two transactions, with about twenty statements ' +
    'in place of one, and a Kubernetes write that is validated, tracked and durable.',
  tier: 'database',
  open: (round) => openCreations(round, 20),
}
