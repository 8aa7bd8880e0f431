/** Parts that the kinds of a node's namespace share. */
import { z } from 'zod'

/** Of the operation that a part of the spec is for, so that what was done for another is never taken for it. */
export const OperationId = z.string().max(253).describe('Id of the operation that it is for.')
export const Port = z.int().min(1).max(65_535)
export const MigrationSecretName = z
  .string()
  .max(253)
  .describe("Secret of this node's namespace whose key `psk` both ends know (64 hex digits).")
export const IsRemoved = z
  .boolean()
  .optional()
  .describe('Of an object that is being deleted: nothing of it is left on the node, and the platform removes it.')
export const Origin = z.strictObject({
  name: z.string().max(253).describe('Name of the template.'),
  version: z.string().max(253).describe('Version of its image.'),
})
