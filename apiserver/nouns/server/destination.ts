/** The move of a server to another node, for every caller: live while it runs, offline while it is stopped. */
import { gibibytesOf } from '../../../domain/server/migration-policies.ts'
import { conflict } from '../../../domain/problem.ts'
import { requireMovable } from '../../../domain/server/rules.ts'
import { requireTarget, type TargetRequest } from '../../../db/server/index.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { factsOf, stateOf } from '../../../resources/server/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { inWords, WORDS } from '../../kit/words.ts'
import type { ServerObject, ServerVerb } from './objects.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export interface Move extends Required<Pick<ServerVerb, 'kind' | 'validate' | 'gibibytes'>> {
  /** What the server is now; the move is cancelled when it changes. */
  readonly power: 'started' | 'stopped'
}

/** Throws 409 unless the server can be moved in its current state. */
export function moveOf(server: ServerObject): Move {
  const stored = storedOf(server)
  const power = stateOf(stored) === 'stopped' ? 'stopped' : 'started'
  const validate: Move['validate'] = (facts) => requireMovable(facts, power)
  validate(factsOf(stored))
  return {
    power,
    validate,
    kind: power === 'started' ? 'server.migrate' : 'server.move',
    gibibytes: gibibytesOf(server.status ?? {}),
  }
}

/** Throws 409 beyond the point of no return of the operation's move. */
export function requireBeforeCutover(status: ServerObject['status'], operationId: string): void {
  if (status?.migration?.operationId === operationId && status.migration.state === 'switched')
    throw conflict('state_not_allowed', 'The server is on its new node already.')
}

/** Throws the Problem with which the move would fail for lack of a node; reserves none. */
export async function requireDestination(
  { caches, db, random }: Parts,
  { accountId, server }: { readonly accountId: string; readonly server: ServerObject },
  wanted: Pick<TargetRequest, 'zone' | 'node'>,
  now: Date,
): Promise<void> {
  const { cpuPool } = caches.of(Plan).get({ name: server.spec.plan })?.spec ?? {}
  const target = { accountId, serverId: server.metadata.name, operationId: newUuid(random), cpuPool, ...wanted }
  await inWords(WORDS.rest, () => requireTarget(db, target, now))
}
