/** The definitions of the stored kinds, built once a process. The folders `crds/` and `charts/svccloud/files/crds` hold
 *  the same as text, for `kubectl` and Helm. */
import { type Crd, crdOf } from '../../kit/kube/crd.ts'
import { RESOURCES } from '../../resources/index.ts'

/** `kubectl get svccloud` lists them all. */
const CATEGORY = 'svccloud'

let definitions: readonly Crd[] | undefined

/** The CustomResourceDefinition of each stored kind. */
export const crds = (): readonly Crd[] => (definitions ??= RESOURCES.map((kind) => crdOf(kind, CATEGORY)))
