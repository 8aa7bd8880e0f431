/** A mail as RFC 5322 text. Always unfolded plain text (7bit or 8bit), so that a link is alone on its line and can be
 *  copied from the raw file; encoders would cut it. */

export interface Message {
  /** Also the Message-ID: a mail that is sent twice is recognized as the same. */
  readonly id: string
  readonly from: string
  readonly to: string
  /** ASCII. */
  readonly subject: string
  readonly text: string
  readonly at: Date
}

/** Line breaks are removed from header values, so that none can add a header. */
export function toMessage(message: Message): string {
  const domain = /@([^>\s]+)>?\s*$/.exec(message.from)?.[1] ?? 'localhost'
  const isAscii = /^[\x00-\x7f]*$/.test(message.text)
  return [
    `From: ${oneLine(message.from)}`,
    `To: ${oneLine(message.to)}`,
    `Subject: ${oneLine(message.subject)}`,
    `Date: ${message.at.toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: <${message.id}@${domain}>`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Transfer-Encoding: ${isAscii ? '7bit' : '8bit'}`,
    '',
    ...message.text.trimEnd().split(/\r?\n/),
    '',
  ].join('\r\n')
}

const oneLine = (text: string): string => text.replace(/[\r\n]+/g, ' ')
