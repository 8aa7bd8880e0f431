/** Changes that a custom image's state allows: one rule per verb, the same for every interface. */
import type { OperationKind } from '../operations.ts'
import { conflict, operationInProgress } from '../problem.ts'

export interface CustomImageFacts {
  readonly id: string
  readonly state: 'creating' | 'online' | 'error' | 'deleting'
  readonly activeOperation: { readonly id: string; readonly kind: OperationKind } | undefined
}

/** Throws 409 while the image is being created or deleted. */
export function requireDeletableImage({ id, state, activeOperation }: CustomImageFacts): void {
  const resource = { type: 'custom_image', id }
  if (activeOperation !== undefined) throw operationInProgress(activeOperation.id, resource)
  if (state === 'creating' || state === 'deleting')
    throw conflict('state_not_allowed', `The image is in state ${state}.`, { resource })
}

/** Throws 409 unless servers can be created from the image. */
export function requireOnlineImage({ id, state, activeOperation }: CustomImageFacts): void {
  const shown = activeOperation?.kind === 'template.delete' ? 'deleting' : state
  if (shown !== 'online')
    throw conflict('state_not_allowed', `The image is in state ${shown}; only one that is online can be used.`, {
      resource: { type: 'custom_image', id },
    })
}
