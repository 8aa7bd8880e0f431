/** The portal of staff and operators. */
import { isCancellableByOperators } from '../../domain/operations.ts'
import { hasStaffRole } from '../../domain/permissions.ts'
import type { Answer } from '../api/operations.ts'
import type { Portal } from '../api/portal.ts'
import catalogue from '../generated/operator-operations.json' with { type: 'json' }

export const operatorPortal: Portal = {
  operations: catalogue as unknown as Portal['operations'], // the generated file has this shape
  bodies: async () => {
    const { default: bodies } = await import('../generated/operator-bodies.json', { with: { type: 'json' } })
    return bodies as unknown as Awaited<ReturnType<Portal['bodies']>> // the generated file has this shape
  },
  notes: async (locale) => (locale === 'de' ? (await import('./texts/de-notes.ts')).operatorNotes : {}),
  csrfCookie: 'svccloud_staff_csrf',
  me: 'get_current_staff',
  permits: ({ staffRole }, me) => {
    if (staffRole === undefined) return true
    // the answer of the operation named above
    const staff = (me as Answer<'get_current_staff'> | undefined)?.staff
    return staff !== undefined && hasStaffRole([staff.role], staffRole)
  },
  operationList: 'list_operator_operations',
  cancelOperation: 'cancel_operator_operation',
  isCancellable: isCancellableByOperators,
  hasActivity: false,
}
