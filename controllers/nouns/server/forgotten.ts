/** A server that was whole and has no claims any more: PostgreSQL was put back to a time before they were made. Its
 *  guest, its disk and its addresses are there; what it uses is given to nobody else, and whoever asks for its power or
 *  its end gets that by what is there. What is missing is for an operator to decide. */
import { defined } from '../../../domain/defined.ts'
import { Instance } from '../../../resources/instance/index.ts'
import { usesOfServer } from '../../../resources/uses.ts'
import type { ServerAction } from './actions.ts'
import { FORGOTTEN_DETAIL, forgottenCondition, isForgotten } from './claimed.ts'
import type { Decision, OperationInput, ReconcileInput } from './decision.ts'
import type { Power } from './drafts.ts'
import type { InstanceObject } from './observed.ts'

/** It keeps what it has from others, and says what is the matter. Only the first time: nothing of it changes. */
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
                uses: usesOfServer(server, observed.accountId),
              },
            },
          ],
        }),
  }
}

const POSSIBLE: readonly string[] = ['server.start', 'server.stop', 'server.restart', 'server.delete']

/** What needs claims ends at once; so does whatever has no guest to be done to. */
export function endedByForgetting(input: OperationInput): Decision | undefined {
  if (!isForgotten(input)) return undefined
  if (POSSIBLE.includes(input.operation.kind) && input.observed.instance !== undefined) return undefined
  if (input.operation.kind === 'server.create' || input.operation.kind === 'server.force_release') return undefined
  return { state: 'error', detail: FORGOTTEN_DETAIL, step: 'done', outcome: 'failed', error: FORGOTTEN_DETAIL }
}

/** The instance as it is, but for its power. */
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
