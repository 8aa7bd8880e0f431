/** Changes that a template's state allows, for every interface. */
import { conflict, operationInProgress } from '../../../domain/problem.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { isBuiltHere, type TemplateSpec, type TemplateStatus } from '../../../resources/catalog/index.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'

export type TemplateObject = KubeObject<TemplateSpec, TemplateStatus>

const referenceOf = ({ metadata: { name } }: TemplateObject) => ({ type: 'template', id: name })

/** Throws 409 while another change of it runs. */
export function requireIdle(template: TemplateObject): void {
  const { spec, status, metadata } = template
  const active = activeOperationOf({ spec, status })
  if (active !== undefined) throw operationInProgress(active.id, referenceOf(template))
  if (metadata.deletionTimestamp !== undefined)
    throw conflict('state_not_allowed', 'The template is being deleted.', { resource: referenceOf(template) })
}

/** Throws 409 unless nodes can fetch what others have fetched. */
export function requireCopyable(template: TemplateObject): void {
  requireIdle(template)
  const { spec, status } = template
  const state = isBuiltHere(spec) ? 'online' : (status?.state ?? 'creating')
  if (state !== 'online')
    throw conflict('state_not_allowed', `The template is in state ${state}.`, { resource: referenceOf(template) })
}
