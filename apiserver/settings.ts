/** Settings of the API server. */
import { z } from 'zod'
import { parseLoopbackTwins } from '../domain/network/loopback-twins.ts'
import { controlPlanesSettings } from '../integrations/control-planes/settings.ts'
import { NamespaceRights } from '../kit/kube/namespace-rights.ts'
import { objectStorageSettings } from '../integrations/object-storage/settings.ts'
import { organisationPlatformUrl } from '../integrations/organisation-platform/settings.ts'
import { paymentsSettings } from '../integrations/payments/settings.ts'
import { databaseSettings, Flag, List, logLevel, Port, sealingSettings } from '../kit/sys/settings.ts'

export const AUDIT_VERIFY_SECONDS = 3600
export const AUDIT_RETENTION_DAYS = 730

export const ApiServerSettings = z.strictObject({
  host: z.string().default('127.0.0.1').describe('Address that the API listens on.'),
  port: Port.default(8080).describe('Port of the API; 0 takes a free one.'),
  operatorHost: z.string().default('127.0.0.1').describe('Address that the listener for operators is on.'),
  operatorPort: Port.default(8081).describe('Port of the listener for operators; 0 takes a free one.'),
  ...databaseSettings,
  ...sealingSettings,
  kubeconfig: z
    .string()
    .optional()
    .describe("Kubeconfig file of the Kubernetes API. Without it, the pod's service account is used."),
  namespaceRights: NamespaceRights.describe(
    'Rights that the process has in namespaces of accounts and nodes through bindings there, as the chart writes them.',
  ),
  publicUrl: z.url().optional().describe('URL under which customers reach the API. With https, cookies are secure.'),
  portalDirectory: z
    .string()
    .optional()
    .describe('Folder of the built portal, or `none`. Without it, that of the installation, if it was built.'),
  terraformDirectory: z
    .string()
    .optional()
    .describe('Folder with releases of the provider for Terraform, which is its registry then (operating.md).'),
  brandFile: z
    .string()
    .optional()
    .describe('File (YAML) with name, logo, colours, links and mail texts of the deployment (white-label.md).'),
  staffPortalUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'URL of the portal of the staff. With it, the end of a support session answers a whole address there. With ' +
        'https, cookies of staff are secure; without it, they are as secure as those of customers.',
    ),
  smtpUrl: z
    .string()
    .optional()
    .describe('URL of the SMTP server for mail, with user and password. Without it, no mail is sent.'),
  smtpAllowPlain: Flag.default(false).describe('Send mail to a server that offers no TLS.'),
  mailDirectory: z.string().optional().describe('Folder where mail is written to instead of being sent.'),
  mailFrom: z
    .string()
    .default('no-reply@localhost')
    .describe('Sender of mail: `Name <address>`, or an address that gets the name of the deployment.'),
  trustedProxies: List.default([]).describe(
    'Addresses of proxies (IP or CIDR) whose X-Forwarded-For names the client.',
  ),
  hasPeers: Flag.default(false).describe('More than one API server answers requests.'),
  loopbackTwins: z
    .string()
    .transform((text, context) => {
      const twins = parseLoopbackTwins(text)
      if (twins === undefined) context.addIssue('must look like 198.18=127.18:22')
      return twins
    })
    .optional()
    .describe('Where this machine reaches the SSH port of servers, as halves of addresses: `198.18=127.18:22`.'),
  supportReadNeedsConsent: Flag.default(true).describe('Support staff read an account only with its consent.'),
  auditVerifySeconds: z.coerce
    .number<number | string>()
    .int()
    .min(1)
    .default(AUDIT_VERIFY_SECONDS)
    .describe("Seconds after which an account's audit chain is verified again."),
  auditRetentionDays: z.coerce
    .number<number | string>()
    .int()
    .min(1)
    .default(AUDIT_RETENTION_DAYS)
    .describe('Days after which entries of the audit log may be deleted.'),
  identityProviders: z.string().default('').describe('External identity providers (JSON; identity.md).'),
  webhookHost: z.string().default('127.0.0.1').describe('Address that the validating webhook listens on.'),
  webhookPort: Port.optional().describe('Port of the validating webhook. Without it, there is no webhook.'),
  webhookCertificateFile: z.string().optional().describe('File (PEM) with the certificate of the webhook.'),
  webhookKeyFile: z.string().optional().describe('File (PEM) with the key of the webhook.'),
  webhookTokenFile: z
    .string()
    .optional()
    .describe('File with the bearer token by which the Kubernetes API proves itself to the webhook.'),
  webhookClientAuthorityFile: z
    .string()
    .optional()
    .describe('File (PEM) with the authority of client certificates by which the Kubernetes API proves itself.'),
  webhookRegister: Flag.default(false).describe(
    'Register the webhook with the Kubernetes API, at the start and whenever its configuration is missing or changed.',
  ),
  webhookConfiguration: z
    .string()
    .default('svccloud')
    .describe('Name of the `ValidatingWebhookConfiguration`, which is looked at once a minute.'),
  platformUsers: List.default([]).describe("Users of the platform's own processes, whose writes are not judged."),
  logLevel,
  drainSeconds: z.coerce
    .number<number | string>()
    .int()
    .min(0)
    .max(300)
    .default(0)
    .describe('Seconds to keep serving after the request to stop, until load balancers have noticed.'),
  ...paymentsSettings,
  ...objectStorageSettings,
  ...controlPlanesSettings,
  organisationPlatformUrl,
})
export type ApiServerSettings = z.output<typeof ApiServerSettings>
