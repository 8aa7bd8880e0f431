/** The string formats that are validated; unknown ones are only documentation. */
import { isIP, isIPv4, isIPv6 } from 'node:net'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/
const DATE = /^\d{4}-\d{2}-\d{2}$/
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i
const LETTER = String.raw`[a-zA-Z0-9\p{S}\p{L}]`
const INNER = String.raw`[a-zA-Z0-9-\p{S}\p{L}]{0,61}`
const HOSTNAME = new RegExp(
  String.raw`^(${LETTER}(${INNER}${LETTER})?\.)*(${LETTER}${INNER}${LETTER}|[a-zA-Z0-9])\.?$`,
  'u',
)
const GO_DURATION = /^[-+]?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$|^0$/
const UNITS = /ns|us|ms|s|m|h|d|w|(?:nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?/.source
const LONG_DURATION = new RegExp(String.raw`^\d+\s*(?:${UNITS})$`)
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i

export const isCidr = (value: string): boolean => {
  const [address = '', bits = '', ...rest] = value.split('/')
  return (
    rest.length === 0 && /^\d{1,3}$/.test(bits) && isIP(address) !== 0 && Number(bits) <= (isIPv4(address) ? 32 : 128)
  )
}
export const isUri = (value: string): boolean => value.startsWith('/') || URL.canParse(value)

const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  byte: (value) => BASE64.test(value),
  date: (value) => DATE.test(value) && !Number.isNaN(Date.parse(value)),
  'date-time': (value) => DATE_TIME.test(value) && !Number.isNaN(Date.parse(value)),
  datetime: (value) => DATE_TIME.test(value) && !Number.isNaN(Date.parse(value)),
  duration: (value) => GO_DURATION.test(value) || LONG_DURATION.test(value),
  email: (value) => /^[^\s@]+@[^\s@]+$/.test(value),
  hostname: (value) => HOSTNAME.test(value) && value.length <= 255,
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCidr,
  mac: (value) => MAC.test(value),
  uri: isUri,
  uuid: (value) => UUID.test(value),
}

export const isOfFormat = (value: string, format: string): boolean => FORMATS[format]?.(value) ?? true
