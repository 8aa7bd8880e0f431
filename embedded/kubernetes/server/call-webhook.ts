/** Calls a webhook over HTTPS, trusting the authority that its configuration names. */
import { request } from 'node:https'
import type { WebhookCall } from '../admission/webhooks.ts'

const ANSWER_MOST_BYTES = 1024 * 1024

export function callWebhook({ url, authority, timeoutSeconds, body }: WebhookCall): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      accept: 'application/json',
    }
    const call = request(
      url,
      { method: 'POST', headers, timeout: timeoutSeconds * 1000, ...(authority === '' ? {} : { ca: authority }) },
      (answer) => {
        const chunks: Buffer[] = []
        let length = 0
        answer.on('data', (chunk: Buffer) => {
          length += chunk.length
          if (length > ANSWER_MOST_BYTES) call.destroy(new Error('the answer is too large'))
          chunks.push(chunk)
        })
        answer.once('error', reject)
        answer.once('end', () =>
          answer.statusCode === 200
            ? resolve(Buffer.concat(chunks).toString())
            : reject(new Error(`the webhook answered ${answer.statusCode}`)),
        )
      },
    )
    call.once('timeout', () => call.destroy(new Error(`no answer within ${timeoutSeconds} s`)))
    call.once('error', reject)
    call.end(body)
  })
}
