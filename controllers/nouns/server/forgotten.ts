/** A server that was complete and no longer has claims: PostgreSQL was restored from a time before them. Its guest, its
 *  disk and its addresses exist. What it uses is assigned to nobody else, and its power and its deletion still work,
 *  based on what exists. An operator must decide about what is missing. */
import { defined } from '../../../domain/defined.ts'
import { Instance } from '../../../resources/instance/index.ts'
import { usesOfInstance } from '../../../resources/instance/uses.ts'
import { usesOfServer } from '../../../resources/server/index.ts'
import type { ServerAction } from './actions.ts'
import { FORGOTTEN_DETAIL, forgottenCondition, isForgotten } from './claimed.ts'
import type { Decision, OperationInput, ReconcileInput } from './decision.ts'
import type { Power } from './drafts.ts'
import type { InstanceObject } from './observed.ts'

/** Reserves what the server uses, and reports the problem. Only the first time: none of it changes. */
export function forgotten(input: ReconcileInput): Decision {
  const { server, observed } = input
  const isKnown = forgottenCondition(server) !== undefined
  return {
    state: 'error',
    detail: FORGOTTEN_DETAIL,
    ...(isKnown || observed.accountId === undefined
      ? {}
      : {
          actions: [
            {
              do: 'effect',
              name: 'keep_in_use',
              input: {
                accountId: observed.accountId,
                serverId: server.metadata.name,
                uses: [
                  ...usesOfServer(server, observed.accountId),
                  ...(observed.instance === undefined ? [] : usesOfInstance(observed.instance.spec)),
                ],
              },
            },
          ],
        }),
  }
}

const POSSIBLE: readonly string[] = ['server.start', 'server.stop', 'server.restart', 'server.delete']

/** An operation that needs claims ends at once; so does one that would act on a guest that does not exist. */
export function endedByForgetting(input: OperationInput): Decision | undefined {
  if (!isForgotten(input)) return undefined
  if (POSSIBLE.includes(input.operation.kind) && input.observed.instance !== undefined) return undefined
  if (input.operation.kind === 'server.create' || input.operation.kind === 'server.force_release') return undefined
  return { state: 'error', detail: FORGOTTEN_DETAIL, step: 'done', outcome: 'failed', error: FORGOTTEN_DETAIL }
}

/** The instance unchanged, except for its power. */
export function repower(instance: InstanceObject, power: Power, annotation: string): ServerAction {
  const { stop: _stop, receive: _receive, send: _send, ...spec } = instance.spec
  const { name, namespace = '', labels = {}, finalizers = [] } = instance.metadata
  return {
    do: 'ensure',
    type: Instance,
    draft: {
      metadata: {
        name,
        namespace,
        labels,
        annotations: { [annotation]: power.operationId },
        finalizers: [...finalizers],
      },
      spec: {
        ...spec,
        power: power.power,
        incarnation: power.incarnation,
        ...defined({ stop: power.stop }),
      },
    },
  }
}
