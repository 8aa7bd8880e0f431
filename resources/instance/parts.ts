/** Parts that several kinds in a node's namespace share. */
import { z } from 'zod'
import { ObjectName, Port } from '../kit/fields.ts'

/** The operation that a part of the spec is for, so that the result for another is never mistaken for its own. */
export const OperationId = ObjectName.describe('Id of the operation that it is for.')
export const MigrationSecretName = ObjectName.describe(
  "Secret in this node's namespace whose key `psk` both ends know (64 hex digits).",
)
export const IsRemoved = z
  .boolean()
  .optional()
  .describe(
    'For an object that is being deleted: whether the node has removed everything of it, so that the platform ' +
      'can remove it.',
  )
/** Where data of a node is served to another one. */
export const Serving = z.strictObject({
  id: OperationId,
  host: ObjectName.describe('Host that serves it.'),
  port: Port.describe('Port on which it is served.'),
})
export const Origin = z.strictObject({
  name: ObjectName.describe('Name of the template.'),
  version: ObjectName.describe('Version of its image.'),
})
