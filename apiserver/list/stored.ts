/** Kubernetes objects as the views read them. */
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Stored } from '../../resources/shapes.ts'

/** The object without what is Kubernetes' own. */
export const storedOf = <Spec, Status>({ metadata, spec, status }: KubeObject<Spec, Status>): Stored<Spec, Status> => ({
  name: metadata.name,
  createdAt: metadata.creationTimestamp ?? '',
  isDeleting: metadata.deletionTimestamp !== undefined,
  spec,
  status,
})
