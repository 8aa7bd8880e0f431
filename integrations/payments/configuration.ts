/** The platform's payment processor, from the settings. */
import { Problem } from '../../domain/problem.ts'
import { readSecretFile } from '../../kit/sys/secret-file.ts'
import type { PaymentEvent, PaymentProcessor } from './processor.ts'
import type { PaymentsSettings } from './settings.ts'

export interface Payments {
  readonly processor: PaymentProcessor
  /** Key for the pages that customers load; undefined without one. */
  readonly publishableKey?: string | undefined
  /** Parses the event of a signed message. Throws 400 when the processor did not sign it. */
  readonly readEvent: (body: Uint8Array, signature: string | undefined, now: Date) => PaymentEvent
}

const DEFAULT_URL = 'https://api.stripe.com'

/** Undefined without a configured key: then nothing is charged. Throws for a file that cannot be read or is empty. */
export async function openPayments(settings: PaymentsSettings): Promise<Payments | undefined> {
  const {
    stripeUrl: url = DEFAULT_URL,
    stripeKeyFile: keyFile,
    stripeWebhookSecretFile: secretFile,
    stripePublishableKey: publishableKey,
  } = settings
  if (keyFile === undefined) return undefined
  const apiKey = await readSecretFile(keyFile)
  const webhookSecret = secretFile === undefined ? undefined : await readSecretFile(secretFile)
  // loaded only when it is used, because it is large
  const { openStripe, readEvent } = await import('./stripe.ts')
  return {
    processor: openStripe({ url: new URL(url), apiKey }),
    publishableKey,
    readEvent(body, signature, now) {
      if (webhookSecret === undefined)
        throw new Problem(503, 'This cloud does not take events of payments.', { reason: 'not_configured' })
      return readEvent(body, signature, webhookSecret, now)
    },
  }
}
