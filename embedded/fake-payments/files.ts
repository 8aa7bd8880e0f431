/** Files that the FAKE payment processor and its callers share: its key, the secret that signs events, its port. */
import { join } from 'node:path'
import { readIfThere, writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { probePort } from '../kit/ports.ts'

const SECRET_CHARACTERS = 32
const HOST = '127.0.0.1'

export interface FakePaymentFiles {
  readonly settings: {
    readonly stripeKeyFile: string
    readonly stripeWebhookSecretFile: string
    readonly stripePublishableKey: string
  }
  /** The same as last time, because invoices contain it; another one when it is in use. */
  readonly port: number
}

/** Creates missing files. */
export async function openFakePaymentFiles(folder: string, random: Random): Promise<FakePaymentFiles> {
  await makeFolder(folder, 0o700)
  const keyFile = join(folder, 'api-key')
  const secretFile = join(folder, 'webhook-secret')
  const portFile = join(folder, 'port')
  await ensureFile(keyFile, `sk_fake_${newBase62(random, SECRET_CHARACTERS)}`)
  await ensureFile(secretFile, `whsec_fake_${newBase62(random, SECRET_CHARACTERS)}`)
  const before = Number((await readIfThere(portFile)) ?? 0)
  const port = await probePort(HOST, before).catch(() => probePort(HOST, 0))
  await writeDurably(portFile, String(port))
  return {
    settings: {
      stripeKeyFile: keyFile,
      stripeWebhookSecretFile: secretFile,
      stripePublishableKey: 'pk_fake',
    },
    port,
  }
}

async function ensureFile(file: string, content: string): Promise<void> {
  if ((await readIfThere(file)) === undefined) await writeDurably(file, content)
}
