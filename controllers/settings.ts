/** Settings of the controllers. */
import { z } from 'zod'
import { controlPlanesSettings } from '../integrations/control-planes/settings.ts'
import { NamespaceRights } from '../kit/kube/namespace-rights.ts'
import { objectStorageSettings } from '../integrations/object-storage/settings.ts'
import {
  organisationPlatformTokenFile,
  organisationPlatformUrl,
} from '../integrations/organisation-platform/settings.ts'
import { paymentsSettings } from '../integrations/payments/settings.ts'
import { databaseSettings, Flag, logLevel, Port, sealingSettings } from '../kit/sys/settings.ts'

export const AUDIT_CHECKPOINT_SECONDS = 3_600

const OvsdbRemotes = z
  .string()
  .regex(
    /^(unix:[^,]+|(tcp|ssl):[^,]+:\d+)(,(unix:[^,]+|(tcp|ssl):[^,]+:\d+))*$/,
    'must be unix:<path>, tcp:<host>:<port> or ssl:<host>:<port>',
  )
  .optional()
const Identity = z.string().min(1).max(253).optional()

export const ControllersSettings = z.strictObject({
  ...databaseSettings,
  ...sealingSettings,
  kubeconfig: z
    .string()
    .optional()
    .describe("Kubeconfig file of the Kubernetes API. Without it, the pod's service account is used."),
  namespaceRights: NamespaceRights.describe(
    'Rights that the process has in namespaces of accounts and nodes through bindings there, as the chart writes them.',
  ),
  installCrds: Flag.default(false).describe('Install the CRDs and the roles of accounts at the start.'),
  catalogFile: z.string().optional().describe('File (YAML) with the catalog that is stored where it is missing.'),
  identity: Identity.describe('Identity in the election, unlike any other, ever. A supervisor sets it.'),
  endedIdentity: Identity.describe('Identity of a process that has ended for certain. A supervisor sets it.'),
  shard: z.string().optional().describe('Part of the work: `zones:a,b` or `others:a,b`. Without it, all of it.'),
  ovnNorthbound: OvsdbRemotes.describe(
    'Northbound database of OVN: `unix:<path>`, `tcp:<host>:<port>` or `ssl:<host>:<port>`, several with commas.',
  ),
  ovnSouthbound: OvsdbRemotes.describe('Southbound database of OVN, in the same form.'),
  ovnTlsFolder: z
    .string()
    .min(1)
    .optional()
    .describe('Folder with tls.key, tls.crt and ca.crt for databases at `ssl:`; read for each connection.'),
  metricsHost: z.string().default('127.0.0.1').describe('Address that metrics and probes are served on.'),
  metricsPort: Port.default(0).describe('Port of metrics and probes; 0 takes a free one.'),
  logLevel,
  stripeUrl: paymentsSettings.stripeUrl,
  stripeKeyFile: paymentsSettings.stripeKeyFile,
  ...objectStorageSettings,
  ...controlPlanesSettings,
  organisationPlatformUrl,
  organisationPlatformTokenFile,
  addressesConfirmed: Flag.default(false).describe(
    'Every mail address counts as confirmed, because no mail can be sent.',
  ),
  auditCheckpointSeconds: z.coerce
    .number<number | string>()
    .int()
    .min(60)
    .max(86_400)
    .default(AUDIT_CHECKPOINT_SECONDS)
    .describe('Seconds between checkpoints of the audit log; each day has one more.'),
})
export type ControllersSettings = z.output<typeof ControllersSettings>
