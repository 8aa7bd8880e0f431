/** Identity providers as the deployment configures them: a JSON array, in button order; the first is primary. */
import { z } from 'zod'

const Name = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
const Icon = z.string().min(1).max(63)

const ProviderConfiguration = z.strictObject({
  /** In `provider=` and in the callback path. */
  name: Name,
  display_name: z.string().min(1).max(100),
  icon: Icon.optional(),
  issuer: z.url(),
  client_id: z.string().min(1),
  client_secret: z.string().min(1),
  /** The portal first tries prompt=none: for a broker whose session other applications share. */
  silent_sign_in: z.boolean().default(false),
  /** One-click upstream connections, passed as the parameter `connection_parameter`. */
  connections: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(100),
        display_name: z.string().min(1).max(100),
        icon: Icon.default('generic'),
      }),
    )
    .default([]),
  connection_parameter: z.string().default('connection'),
  /** Parameters that open the provider's sign-up screen. Empty: it has none, and sign-up sends neither a hint nor a
   *  connection. */
  sign_up_parameters: z.record(z.string(), z.string()).default({}),
  /** The `prompt` that forces the provider to ask for credentials here. */
  forced_prompt: z.enum(['login', 'select_account']).default('login'),
  /** The redirect address registered at the provider: its own (`…/callback/<name>`) or the shared one. */
  callback: z.enum(['own', 'shared']).default('own'),
  /** False when the provider lets anyone claim any address: its addresses neither link nor verify. */
  vouches_for_email: z.boolean().default(true),
  /** The issuer is that of the tenant in `tid`; a person is `tid` and `oid`; the address counts only with `xms_edov`.
   */
  is_multi_tenant: z.boolean().default(false),
  /** A claim that lists the person's organisations; only the platform's own provider has one. */
  organisations_claim: z.string().optional(),
  /** Where people create an organisation. */
  create_organisation_url: z.url().optional(),
})
export type ProviderConfiguration = z.infer<typeof ProviderConfiguration>

const Providers = z
  .array(ProviderConfiguration)
  .refine(
    (providers) => new Set(providers.map(({ name }) => name)).size === providers.length,
    'two providers have one name',
  )

/** Reads the JSON of the configuration. Throws what is wrong with it, without the values. */
export function parseProviders(text: string): readonly ProviderConfiguration[] {
  if (text.trim() === '') return []
  const parsed = Providers.safeParse(JSON.parse(text))
  if (parsed.success) return parsed.data
  throw new TypeError(
    `identity providers: ${parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('; ')}`,
  )
}
