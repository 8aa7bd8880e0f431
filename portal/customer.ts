/** The customers' portal. */
import { isCancellable } from '../domain/operations.ts'
import type { Answer } from './api/operations.ts'
import type { Portal } from './api/portal.ts'
import catalogue from './generated/operations.json' with { type: 'json' }

export const customerPortal: Portal = {
  operations: catalogue as unknown as Portal['operations'], // the generated file has this shape
  bodies: async () => {
    const { default: bodies } = await import('./generated/bodies.json', { with: { type: 'json' } })
    return bodies as unknown as Awaited<ReturnType<Portal['bodies']>> // the generated file has this shape
  },
  terraform: async () => {
    const { default: resources } = await import('./generated/terraform.json', { with: { type: 'json' } })
    // the generated file has this shape
    return resources as unknown as Awaited<ReturnType<NonNullable<Portal['terraform']>>>
  },
  csrfCookie: 'svccloud_csrf',
  me: 'get_current_user',
  permits: ({ permission }, me) =>
    permission === undefined ||
    // the answer of the operation named above
    (me as Answer<'get_current_user'> | undefined)?.permissions.includes(permission) === true,
  operationList: 'list_operations',
  cancelOperation: 'cancel_operation',
  isCancellable,
  hasActivity: true,
}
