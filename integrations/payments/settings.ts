/** Settings of every process that uses the payment processor. */
import { z } from 'zod'
import { HttpUrl } from '../../kit/sys/settings.ts'

export const paymentsSettings = {
  stripeUrl: HttpUrl.optional().describe('URL of the API of the payment processor; that of Stripe by default.'),
  stripeKeyFile: z
    .string()
    .optional()
    .describe("File with the secret key for the payment processor's API. Without it, invoices stay unbilled."),
  stripeWebhookSecretFile: z.string().optional().describe('File with the secret that payment events are signed with.'),
  stripePublishableKey: z.string().optional().describe('Key for the pages on which customers enter a card.'),
}

/** Only some of them may be given. */
export type PaymentsSettings = Partial<z.output<z.ZodObject<typeof paymentsSettings>>>
