/** A mail as RFC 5322 text. Always unfolded plain text (7bit or 8bit), so that a link is alone on its line and can be
 *  copied from the raw file; encoders would cut it. */
import { encodeWord, encodeWords } from 'nodemailer/lib/mime-funcs'

export interface Message {
  /** Also the Message-ID: a mail that is sent twice is recognized as the same. */
  readonly id: string
  readonly from: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly at: Date
}

/** Line breaks are removed from header values, so that none can add a header. */
export function toMessage(message: Message): string {
  const domain = /@([^>\s]+)>?\s*$/.exec(message.from)?.[1] ?? 'localhost'
  const isAscii = /^[\x00-\x7f]*$/.test(message.text)
  return [
    `From: ${senderHeader(oneLine(message.from))}`,
    `To: ${oneLine(message.to)}`,
    `Subject: ${encodeWords(oneLine(message.subject), 'B', WORD_CHARACTERS_MAXIMUM)}`,
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

/** Of an encoded word, with room for what it is wrapped in. */
const WORD_CHARACTERS_MAXIMUM = 52

/** `Name <address>` or an address. A name with other letters than ASCII is encoded, one with marks that mean something
 *  in an address is quoted. */
function senderHeader(from: string): string {
  const [, name = '', address = from] = /^(.*?)\s*<([^<>]+)>$/.exec(from) ?? []
  const plain = name.replace(/^"(.*)"$/, '$1')
  if (plain === '') return address
  if (!/^[\x20-\x7e]*$/.test(plain)) return `${encodeWord(plain, 'B', WORD_CHARACTERS_MAXIMUM)} <${address}>`
  return `${/^[\w !#$%&'*+/=?^`{|}~-]*$/.test(plain) ? plain : JSON.stringify(plain)} <${address}>`
}

const oneLine = (text: string): string => text.replace(/[\r\n]+/g, ' ')
