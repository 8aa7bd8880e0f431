/** Settings of `npm start` besides its flags, and those of its components: variables that it reads or passes on
 *  unchanged. Components refuse invalid values. */
import { z } from 'zod'
import type { NodeAgentSettings } from '../agents/node/settings.ts'
import type { ApiServerSettings } from '../apiserver/settings.ts'
import type { ControllersSettings } from '../controllers/settings.ts'
import { Flag, List, Port, variableOf } from '../kit/sys/settings.ts'

export const StartSettings = z.strictObject({
  acceptEmptyStore: List.default([]).describe(
    'Stores (`postgres`, `kubernetes`) that may start empty although the data folder says that there was one.',
  ),
  imageCache: z
    .string()
    .optional()
    .describe('Folder of guest images, to share them between data folders. Without it, `images` in the data folder.'),
  smtpUrl: z
    .string()
    .optional()
    .describe('URL of the SMTP server for mail. Without it, mail is written to files of the data folder.'),
  sealingKeys: z.string().optional().describe('Keys that secrets in the database are sealed with; made by default.'),
  lostSealingKeys: List.default([]).describe('Ids of sealing keys that are lost, and whose loss is accepted.'),
  objectStorageHost: z
    .string()
    .optional()
    .describe('Name that S3 clients know this machine by; `{zone}` in it is replaced by the name of the zone.'),
  objectStorageCgroup: z
    .string()
    .optional()
    .describe('Delegated control group, below which the engines of object storage get their bounds.'),
  versitygw: z
    .string()
    .optional()
    .describe('Path of the engine of object storage. Without it, the one that was built.'),
  controlPlanesMemoryMebibytes: z.coerce
    .number<number | string>()
    .int()
    .min(1)
    .optional()
    .describe('Memory of all control planes together. Without it, a quarter of the memory of this machine.'),
  playgroundsDomain: z
    .string()
    .default('apps.localhost')
    .describe('Domain below which apps of playgrounds are served. Its names must point to this machine.'),
  playgroundsPort: Port.default(0).describe('Port on which they are served; 0 takes a free one.'),
  playgroundsAccelerator: z
    .enum(['kvm', 'tcg'])
    .optional()
    .describe('What runs guests of playgrounds; `kvm` only where every user may use it. Without it, `tcg`.'),
  simulatedNodes: Flag.default(false).describe(
    'With `--hypervisor simulated`: nodes of clusters join from this machine, where somebody plays them.',
  ),
  cephPool: z.string().optional().describe('Pool of a Ceph cluster that the nodes share. It excludes `--network ovn`.'),
  guestNetwork: z
    .enum(['ovn', 'outbound', 'isolated'])
    .optional()
    .describe(
      'Network of guests without the embedded OVN: that of a separate OVN, outbound connections only, or none.',
    ),
  ovnNorthbound: z.string().optional().describe('Northbound database of a separate OVN.'),
  sharedVolumes: z
    .string()
    .optional()
    .describe('Folder that the nodes of a zone share, or `none`. Without it, one of the data folder.'),
  backupStore: z
    .string()
    .optional()
    .describe('Where backups go: as for the node agent. Without it, a folder of the data folder for each zone.'),
  backupSources: z.string().optional().describe('Backup stores of other zones: as for the node agent.'),
})
export type StartSettings = z.output<typeof StartSettings>

/** Settings of every component. */
const COMMON = ['logLevel'] as const
/** Passed on to a component unchanged. */
export const PASSED_ON = {
  apiserver: [
    ...COMMON,
    'smtpUrl',
    'smtpAllowPlain',
    'mailFrom',
    'trustedProxies',
    'lostSealingKeys',
    'publicUrl',
    'brandFile',
    'staffPortalUrl',
    'identityProviders',
    'supportReadNeedsConsent',
    'auditVerifySeconds',
    'auditRetentionDays',
    'webhookTokenFile',
    'webhookClientAuthorityFile',
    'organisationPlatformUrl',
    'rgwFile',
  ] satisfies readonly (keyof ApiServerSettings)[],
  controllers: [
    ...COMMON,
    'lostSealingKeys',
    'auditCheckpointSeconds',
    'organisationPlatformUrl',
    'organisationPlatformTokenFile',
    'ovnNorthbound',
    'ovnSouthbound',
    'rgwFile',
  ] satisfies readonly (keyof ControllersSettings)[],
  agent: [
    ...COMMON,
    'guestNetwork',
    'guestUsers',
    'migrationBandwidth',
    'cephPool',
    'cephUser',
    'cephConfiguration',
    'cephKeyring',
  ] satisfies readonly (keyof NodeAgentSettings)[],
  others: COMMON,
} as const
/** Passed on to components that use the payment processor, unless it is the fake one. */
export const PAYMENTS_PASSED_ON = [
  'stripeUrl',
  'stripeKeyFile',
  'stripeWebhookSecretFile',
  'stripePublishableKey',
] as const satisfies readonly (keyof ApiServerSettings)[]

/** The values of those fields whose variables are set, also to the empty text, which components refuse. */
export function passedOn<Settings>(
  fields: readonly (keyof Settings & string)[],
  environment: Readonly<Record<string, string | undefined>>,
): Partial<Settings> {
  const pairs = fields.map((field) => [field, environment[variableOf(field)]] as const)
  const set = pairs.filter(([, value]) => value !== undefined)
  return Object.fromEntries(set) as Partial<Settings> // texts, which the component parses
}
