/** Numbers, names and types of the protobuf fields of the kinds that Go clients send: facts of the Kubernetes API
 *  (1.36). One message a line, as `number name type`; `[]` is a list, `{}` a map with string keys. Workloads are
 *  omitted: nothing here reads them, so any JSON members are accepted. */

/** The message of each kind. */
export const KINDS: Readonly<Record<string, string>> = {
  'v1/Namespace': 'Namespace',
  'v1/Secret': 'Secret',
  'v1/ConfigMap': 'ConfigMap',
  'v1/ServiceAccount': 'ServiceAccount',
  'v1/Event': 'Event',
  'v1/Service': 'Service',
  'coordination.k8s.io/v1/Lease': 'coordination.Lease',
  'events.k8s.io/v1/Event': 'events.Event',
  'authorization.k8s.io/v1/SubjectAccessReview': 'authz.SubjectAccessReview',
  'authorization.k8s.io/v1/SelfSubjectAccessReview': 'authz.SelfSubjectAccessReview',
  'authorization.k8s.io/v1/SelfSubjectRulesReview': 'authz.SelfSubjectRulesReview',
  'authentication.k8s.io/v1/TokenReview': 'authn.TokenReview',
  'authentication.k8s.io/v1/TokenRequest': 'authn.TokenRequest',
  'authentication.k8s.io/v1/SelfSubjectReview': 'authn.SelfSubjectReview',
  'v1/DeleteOptions': 'DeleteOptions',
  'rbac.authorization.k8s.io/v1/Role': 'rbac.Role',
  'rbac.authorization.k8s.io/v1/RoleBinding': 'rbac.RoleBinding',
  'rbac.authorization.k8s.io/v1/ClusterRole': 'rbac.ClusterRole',
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': 'rbac.ClusterRoleBinding',
}

export const MESSAGES: Readonly<Record<string, string>> = {
  ClientIPConfig: '1 timeoutSeconds int',
  Condition:
    '1 type string, 2 status string, 3 observedGeneration int, 4 lastTransitionTime Time, 5 reason string, 6 ' +
    'message string',
  ConfigMap: '1 metadata ObjectMeta, 4 immutable bool, 2 data {string}, 3 binaryData {bytes}',
  DeleteOptions:
    '1 gracePeriodSeconds int, 2 preconditions Preconditions, 3 orphanDependents bool, 4 propagationPolicy ' +
    'string, 5 dryRun string[], 6 ignoreStoreReadErrorWithClusterBreakingPotential bool',
  Event:
    '1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string, 4 message string, 5 source ' +
    'EventSource, 6 firstTimestamp Time, 7 lastTimestamp Time, 8 count int, 9 type string, 10 eventTime ' +
    'MicroTime, 11 series EventSeries, 12 action string, 13 related ObjectReference, 14 reportingComponent ' +
    'string, 15 reportingInstance string',
  EventSeries: '1 count int, 2 lastObservedTime MicroTime',
  EventSource: '1 component string, 2 host string',
  ExtraValue: '1 items string[]',
  FieldSelectorRequirement: '1 key string, 2 operator string, 3 values string[]',
  FieldsV1: '1 raw bytes',
  IntOrString: '1 isText int, 2 number int, 3 text string',
  LabelSelector: '1 matchLabels {string}, 2 matchExpressions LabelSelectorRequirement[]',
  LabelSelectorRequirement: '1 key string, 2 operator string, 3 values string[]',
  LoadBalancerIngress: '1 ip string, 2 hostname string, 3 ipMode string, 4 ports PortStatus[]',
  LoadBalancerStatus: '1 ingress LoadBalancerIngress[]',
  LocalObjectReference: '1 name string',
  ManagedFieldsEntry:
    '1 manager string, 2 operation string, 3 apiVersion string, 4 time Time, 6 fieldsType string, 7 fieldsV1 ' +
    'FieldsV1, 8 subresource string',
  MicroTime: '1 seconds int, 2 nanoseconds int',
  Namespace: '1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus',
  NamespaceCondition: '1 type string, 2 status string, 4 lastTransitionTime Time, 5 reason string, 6 message string',
  NamespaceSpec: '1 finalizers string[]',
  NamespaceStatus: '1 phase string, 2 conditions NamespaceCondition[]',
  ObjectMeta:
    '1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, 5 uid string, 6 ' +
    'resourceVersion string, 7 generation int, 8 creationTimestamp Time, 9 deletionTimestamp Time, 10 ' +
    'deletionGracePeriodSeconds int, 11 labels {string}, 12 annotations {string}, 13 ownerReferences ' +
    'OwnerReference[], 14 finalizers string[], 17 managedFields ManagedFieldsEntry[]',
  ObjectReference:
    '1 kind string, 2 namespace string, 3 name string, 4 uid string, 5 apiVersion string, 6 resourceVersion ' +
    'string, 7 fieldPath string',
  OwnerReference:
    '5 apiVersion string, 1 kind string, 3 name string, 4 uid string, 6 controller bool, 7 blockOwnerDeletion bool',
  PortStatus: '1 port int, 2 protocol string, 3 error string',
  Preconditions: '1 uid string, 2 resourceVersion string',
  Secret: '1 metadata ObjectMeta, 5 immutable bool, 2 data {bytes}, 4 stringData {string}, 3 type string',
  Service: '1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status ServiceStatus',
  ServiceAccount:
    '1 metadata ObjectMeta, 2 secrets ObjectReference[], 3 imagePullSecrets LocalObjectReference[], 4 ' +
    'automountServiceAccountToken bool',
  ServicePort:
    '1 name string, 2 protocol string, 6 appProtocol string, 3 port int, 4 targetPort IntOrString, 5 nodePort int',
  ServiceSpec:
    '1 ports ServicePort[], 2 selector {string}, 3 clusterIP string, 18 clusterIPs string[], 4 type string, 5 ' +
    'externalIPs string[], 7 sessionAffinity string, 8 loadBalancerIP string, 9 loadBalancerSourceRanges ' +
    'string[], 10 externalName string, 11 externalTrafficPolicy string, 12 healthCheckNodePort int, 13 ' +
    'publishNotReadyAddresses bool, 14 sessionAffinityConfig SessionAffinityConfig, 19 ipFamilies string[], 17 ' +
    'ipFamilyPolicy string, 20 allocateLoadBalancerNodePorts bool, 21 loadBalancerClass string, 22 ' +
    'internalTrafficPolicy string, 23 trafficDistribution string',
  ServiceStatus: '1 loadBalancer LoadBalancerStatus, 2 conditions Condition[]',
  SessionAffinityConfig: '1 clientIP ClientIPConfig',
  Time: '1 seconds int, 2 nanoseconds int',
  TypeMeta: '1 apiVersion string, 2 kind string',
  Unknown: '1 typeMeta TypeMeta, 2 raw bytes',
  'authn.BoundObjectReference': '1 kind string, 2 apiVersion string, 3 name string, 4 uID string',
  'authn.SelfSubjectReview': '1 metadata ObjectMeta, 2 status authn.SelfSubjectReviewStatus',
  'authn.SelfSubjectReviewStatus': '1 userInfo authn.UserInfo',
  'authn.TokenRequest': '1 metadata ObjectMeta, 2 spec authn.TokenRequestSpec, 3 status authn.TokenRequestStatus',
  'authn.TokenRequestSpec':
    '1 audiences string[], 4 expirationSeconds int, 3 boundObjectRef authn.BoundObjectReference',
  'authn.TokenRequestStatus': '1 token string, 2 expirationTimestamp Time',
  'authn.TokenReview': '1 metadata ObjectMeta, 2 spec authn.TokenReviewSpec, 3 status authn.TokenReviewStatus',
  'authn.TokenReviewSpec': '1 token string, 2 audiences string[]',
  'authn.TokenReviewStatus': '1 authenticated bool, 2 user authn.UserInfo, 4 audiences string[], 3 error string',
  'authn.UserInfo': '1 username string, 2 uid string, 3 groups string[], 4 extra {ExtraValue}',
  'authz.FieldSelectorAttributes': '1 rawSelector string, 2 requirements FieldSelectorRequirement[]',
  'authz.LabelSelectorAttributes': '1 rawSelector string, 2 requirements LabelSelectorRequirement[]',
  'authz.NonResourceAttributes': '1 path string, 2 verb string',
  'authz.NonResourceRule': '1 verbs string[], 2 nonResourceURLs string[]',
  'authz.ResourceAttributes':
    '1 namespace string, 2 verb string, 3 group string, 4 version string, 5 resource string, 6 subresource ' +
    'string, 7 name string, 8 fieldSelector authz.FieldSelectorAttributes, 9 labelSelector ' +
    'authz.LabelSelectorAttributes',
  'authz.ResourceRule': '1 verbs string[], 2 apiGroups string[], 3 resources string[], 4 resourceNames string[]',
  'authz.SelfSubjectAccessReview':
    '1 metadata ObjectMeta, 2 spec authz.SelfSubjectAccessReviewSpec, 3 status authz.SubjectAccessReviewStatus',
  'authz.SelfSubjectAccessReviewSpec':
    '1 resourceAttributes authz.ResourceAttributes, 2 nonResourceAttributes authz.NonResourceAttributes',
  'authz.SelfSubjectRulesReview':
    '1 metadata ObjectMeta, 2 spec authz.SelfSubjectRulesReviewSpec, 3 status authz.SubjectRulesReviewStatus',
  'authz.SelfSubjectRulesReviewSpec': '1 namespace string',
  'authz.SubjectAccessReview':
    '1 metadata ObjectMeta, 2 spec authz.SubjectAccessReviewSpec, 3 status authz.SubjectAccessReviewStatus',
  'authz.SubjectAccessReviewSpec':
    '1 resourceAttributes authz.ResourceAttributes, 2 nonResourceAttributes authz.NonResourceAttributes, 3 user ' +
    'string, 4 groups string[], 5 extra {ExtraValue}, 6 uid string',
  'authz.SubjectAccessReviewStatus': '1 allowed bool, 4 denied bool, 2 reason string, 3 evaluationError string',
  'authz.SubjectRulesReviewStatus':
    '1 resourceRules authz.ResourceRule[], 2 nonResourceRules authz.NonResourceRule[], 3 incomplete bool, 4 ' +
    'evaluationError string',
  'coordination.Lease': '1 metadata ObjectMeta, 2 spec coordination.LeaseSpec',
  'coordination.LeaseSpec':
    '1 holderIdentity string, 2 leaseDurationSeconds int, 3 acquireTime MicroTime, 4 renewTime MicroTime, 5 ' +
    'leaseTransitions int, 6 strategy string, 7 preferredHolder string',
  'events.Event':
    '1 metadata ObjectMeta, 2 eventTime MicroTime, 3 series events.EventSeries, 4 reportingController string, 5 ' +
    'reportingInstance string, 6 action string, 7 reason string, 8 regarding ObjectReference, 9 related ' +
    'ObjectReference, 10 note string, 11 type string, 12 deprecatedSource EventSource, 13 ' +
    'deprecatedFirstTimestamp Time, 14 deprecatedLastTimestamp Time, 15 deprecatedCount int',
  'events.EventSeries': '1 count int, 2 lastObservedTime MicroTime',
  'rbac.AggregationRule': '1 clusterRoleSelectors LabelSelector[]',
  'rbac.ClusterRole': '1 metadata ObjectMeta, 2 rules rbac.PolicyRule[], 3 aggregationRule rbac.AggregationRule',
  'rbac.ClusterRoleBinding': '1 metadata ObjectMeta, 2 subjects rbac.Subject[], 3 roleRef rbac.RoleRef',
  'rbac.PolicyRule':
    '1 verbs string[], 2 apiGroups string[], 3 resources string[], 4 resourceNames string[], 5 nonResourceURLs ' +
    'string[]',
  'rbac.Role': '1 metadata ObjectMeta, 2 rules rbac.PolicyRule[]',
  'rbac.RoleBinding': '1 metadata ObjectMeta, 2 subjects rbac.Subject[], 3 roleRef rbac.RoleRef',
  'rbac.RoleRef': '1 apiGroup string, 2 kind string, 3 name string',
  'rbac.Subject': '1 kind string, 2 apiGroup string, 3 name string, 4 namespace string',
}
