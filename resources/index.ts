/** THE lists of all stored kinds and all routes; one line per noun. */
import type { Route } from '../kit/http/route.ts'
import { ACCOUNT_ROUTES } from './account/index.ts'
import { API_TOKEN_ROUTES } from './api-token/index.ts'
import { AUDIT_ROUTES } from './audit/index.ts'
import { Backup, BACKUP_ROUTES } from './backup/index.ts'
import { BackupJob } from './backup-job/index.ts'
import { BILLING_ROUTES } from './billing/index.ts'
import { CATALOG_ROUTES, Plan, Region, Template, Zone } from './catalog/index.ts'
import { CHANGE_ROUTES } from './change/index.ts'
import { SEARCH_ROUTES } from './search/index.ts'
import { CONSOLE_ROUTES } from './console/index.ts'
import { CREDIT_ROUTES } from './credit/index.ts'
import { CUSTOM_IMAGE_ROUTES, CustomImage, managedCustomImage } from './custom-image/index.ts'
import { Database, DATABASE_ROUTES, managedDatabase } from './database/index.ts'
import type { Resource } from './kit/define.ts'
import type { ManagedNoun } from './kit/managed.ts'
import { DEV_CLUSTER_ROUTES, DevCluster, managedDevCluster } from './dev-cluster/index.ts'
import { Edge, EDGE_ROUTES, managedEdge } from './edge/index.ts'
import { FLOATING_IP_ROUTES, FloatingIp, managedFloatingIp } from './floating-ip/index.ts'
import { IDENTITY_PROVIDER_ROUTES } from './identity-provider/index.ts'
import { SIGN_IN_ROUTES } from './identity/index.ts'
import { INIT_SCRIPT_ROUTES, managedInitScript } from './init-script/index.ts'
import { ManagedMachine } from './managed-machine/index.ts'
import { Image, Instance, NodeReport, Observation, Volume } from './instance/index.ts'
import { INVOICE_RUN_ROUTES } from './invoice-run/index.ts'
import { PRIVATE_CLOUD_ROUTES } from './private-cloud/index.ts'
import { MCP_ROUTES } from './mcp/index.ts'
import { MEMBER_ROUTES } from './member/index.ts'
import {
  KUBERNETES_CLUSTER_ROUTES,
  KubernetesCluster,
  managedKubernetesCluster,
  managedNodePool,
} from './kubernetes-cluster/index.ts'
import { KUBERNETES_HOST_ROUTES, KubernetesHost } from './kubernetes-host/index.ts'
import {
  LOAD_BALANCER_ROUTES,
  LoadBalancer,
  managedLoadBalancer,
  managedLoadBalancerCertificate,
} from './load-balancer/index.ts'
import { managedNetwork, Network, NETWORK_ROUTES } from './network/index.ts'
import { Node, NODE_ROUTES } from './node/index.ts'
import { NODE_POOL_ROUTES, NodePool } from './node-pool/index.ts'
import { Operation, OPERATION_ROUTES } from './operation/index.ts'
import { ALARM_ROUTES } from './alarm/index.ts'
import { OPERATOR_ROUTES } from './operator/index.ts'
import { ORGANISATION_ROUTES } from './organisation/index.ts'
import { PAYMENT_ROUTES } from './payment/index.ts'
import { Playground, PLAYGROUND_ROUTES } from './playground/index.ts'
import { NOTICE_ROUTES } from './notice/index.ts'
import { PREFERENCE_ROUTES } from './preference/index.ts'
import { OVERVIEW_ROUTES } from './overview/index.ts'
import { Price, PRICE_ROUTES } from './price/index.ts'
import { PUBLIC_POOL_ROUTES, PublicPool } from './public-pool/index.ts'
import { QUOTA_REQUEST_ROUTES } from './quota-request/index.ts'
import { QUOTA_ROUTES } from './quota/index.ts'
import { REPAIR_ROUTES } from './repair/index.ts'
import { managedRouter, Router, ROUTER_ROUTES } from './router/index.ts'
import { SECOND_FACTOR_ROUTES } from './second-factor/index.ts'
import { managedBucket, managedObjectStorage, OBJECT_STORAGE_ROUTES, ObjectStorage } from './object-storage/index.ts'
import { managedServerGroup, SERVER_GROUP_ROUTES, ServerGroup } from './server-group/index.ts'
import { managedWebhook, Webhook, WEBHOOK_ROUTES } from './webhook/index.ts'
import { AUDIT_SINK_ROUTES, managedAuditSink } from './audit-sink/index.ts'
import { managedServer, managedServerInterface, Server, SERVER_ROUTES } from './server/index.ts'
import { SESSION_ROUTES } from './session/index.ts'
import { managedSnapshot, Snapshot, SNAPSHOT_ROUTES } from './snapshot/index.ts'
import { managedSshKey, SSH_KEY_ROUTES } from './ssh-key/index.ts'
import { STAFF_ROUTES } from './staff/index.ts'
import { managedStorage, Storage, STORAGE_ROUTES } from './storage/index.ts'
import { STORAGE_PLACEMENT_ROUTES } from './storage-placement/index.ts'
import { SUPPORT_ROUTES } from './support/index.ts'
import { TEMPLATE_ROUTES } from './template/index.ts'
import { USAGE_ROUTES } from './usage/index.ts'

export const RESOURCES: readonly Resource[] = [
  Region,
  Zone,
  Plan,
  Price,
  Template,
  Node,
  PublicPool,
  Server,
  ServerGroup,
  Webhook,
  Storage,
  Snapshot,
  Backup,
  CustomImage,
  Network,
  Router,
  LoadBalancer,
  FloatingIp,
  Edge,
  Database,
  KubernetesCluster,
  NodePool,
  KubernetesHost,
  Playground,
  DevCluster,
  ObjectStorage,
  Operation,
  Instance,
  ManagedMachine,
  Volume,
  Image,
  BackupJob,
  NodeReport,
  Observation,
]

/** Nouns that programs can keep as they are written down. */
export const MANAGED: readonly ManagedNoun[] = [
  managedSshKey,
  managedInitScript,
  managedServerGroup,
  managedNetwork,
  managedStorage,
  managedSnapshot,
  managedCustomImage,
  managedServer,
  managedServerInterface,
  managedRouter,
  managedFloatingIp,
  managedLoadBalancer,
  managedLoadBalancerCertificate,
  managedEdge,
  managedDatabase,
  managedKubernetesCluster,
  managedNodePool,
  managedDevCluster,
  managedObjectStorage,
  managedBucket,
  managedWebhook,
  managedAuditSink,
]

export const ROUTES: readonly Route[] = [
  ...SIGN_IN_ROUTES,
  ...SESSION_ROUTES,
  ...SECOND_FACTOR_ROUTES,
  ...IDENTITY_PROVIDER_ROUTES,
  ...MEMBER_ROUTES,
  ...ORGANISATION_ROUTES,
  ...CREDIT_ROUTES,
  ...SUPPORT_ROUTES,
  ...STAFF_ROUTES,
  ...ACCOUNT_ROUTES,
  ...API_TOKEN_ROUTES,
  ...QUOTA_ROUTES,
  ...PRICE_ROUTES,
  ...QUOTA_REQUEST_ROUTES,
  ...OVERVIEW_ROUTES,
  ...NOTICE_ROUTES,
  ...PREFERENCE_ROUTES,
  ...AUDIT_ROUTES,
  ...CATALOG_ROUTES,
  ...SERVER_ROUTES,
  ...CONSOLE_ROUTES,
  ...USAGE_ROUTES,
  ...BILLING_ROUTES,
  ...PAYMENT_ROUTES,
  ...INVOICE_RUN_ROUTES,
  ...PRIVATE_CLOUD_ROUTES,
  ...INIT_SCRIPT_ROUTES,
  ...SERVER_GROUP_ROUTES,
  ...SSH_KEY_ROUTES,
  ...BACKUP_ROUTES,
  ...CUSTOM_IMAGE_ROUTES,
  ...STORAGE_ROUTES,
  ...STORAGE_PLACEMENT_ROUTES,
  ...SNAPSHOT_ROUTES,
  ...NETWORK_ROUTES,
  ...LOAD_BALANCER_ROUTES,
  ...ROUTER_ROUTES,
  ...FLOATING_IP_ROUTES,
  ...EDGE_ROUTES,
  ...DATABASE_ROUTES,
  ...KUBERNETES_CLUSTER_ROUTES,
  ...NODE_POOL_ROUTES,
  ...DEV_CLUSTER_ROUTES,
  ...KUBERNETES_HOST_ROUTES,
  ...PLAYGROUND_ROUTES,
  ...OBJECT_STORAGE_ROUTES,
  ...WEBHOOK_ROUTES,
  ...AUDIT_SINK_ROUTES,
  ...OPERATION_ROUTES,
  ...CHANGE_ROUTES,
  ...SEARCH_ROUTES,
  ...MCP_ROUTES,
  ...NODE_ROUTES,
  ...REPAIR_ROUTES,
  ...PUBLIC_POOL_ROUTES,
  ...TEMPLATE_ROUTES,
  ...OPERATOR_ROUTES,
  ...ALARM_ROUTES,
]

export { accountNamespace, accountNamespaceOf, accountOfNamespace } from './kit/account-namespace.ts'
