/** Bodies that clients in Go send for built-in kinds. */
import { unsupportedMediaType } from '../core/status.ts'

export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

export function jsonFromProtobuf(_bytes: Buffer): string {
  throw unsupportedMediaType('application/json, application/yaml')
}
