/** Names that the platform puts on Kubernetes objects. */

export const ACCOUNT_LABEL = 'svccloud.dev/account'
export const SERVER_LABEL = 'svccloud.dev/server'
/** Which of its owner's machines a managed machine is. */
export const MACHINE_ROLE_LABEL = 'svccloud.dev/machine-role'
/** The newest accepted change that started no operation; proves that the write happened. */
export const LAST_CHANGE_ANNOTATION = 'svccloud.dev/last-change'
/** On a DevCluster: ids of ended credentials in kubeconfigs. It wakes its controller, which then reads the rows. */
export const ENDED_KUBECONFIGS_ANNOTATION = 'svccloud.dev/ended-kubeconfigs'
/** The operation for which the newest incarnation of an Instance was created. */
export const OPERATION_ANNOTATION = 'svccloud.dev/operation'
/** Namespace of the platform's own objects, such as the leases of the leaders. */
export const SYSTEM_NAMESPACE = 'svccloud-system'
