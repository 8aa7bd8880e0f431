/** Calls a webhook over HTTPS, trusting the authority in its configuration. */
import { request } from 'node:https'
import type { CallWebhook, WebhookCall } from '../admission/webhooks.ts'

const ANSWER_MOST_BYTES = 1024 * 1024
const LOOPBACK_HOSTS = ['127.0.0.1', '[::1]', 'localhost']

/** Only webhooks at the platform's address on this machine get the token. With undefined, none gets one. */
export const webhookCaller =
  (token: string | undefined): CallWebhook =>
  (call) =>
    callWebhook(call, token !== undefined && LOOPBACK_HOSTS.includes(new URL(call.url).hostname) ? token : undefined)

function callWebhook(
  { url, authority, timeoutSeconds, body }: WebhookCall,
  token: string | undefined,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      accept: 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
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
