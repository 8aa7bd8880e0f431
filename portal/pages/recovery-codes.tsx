/** Recovery codes: shown once, to copy, download or print. */
import { type ReactNode, useState } from 'react'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox } from '../ui/field.tsx'
import { Row } from '../ui/layout.tsx'
import { announce } from '../ui/toast.tsx'

export interface RecoveryCodesProps {
  readonly codes: readonly string[]
  readonly onKept: () => void
}

export function RecoveryCodes({ codes, onKept }: RecoveryCodesProps): ReactNode {
  const [isKept, setKept] = useState(false)
  const text = `${codes.join('\n')}\n`
  return (
    <div className="form">
      <h2>{t().factor.codes}</h2>
      <p>{t().factor.codesNote}</p>
      <ul className="codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <Row>
        <Button
          onPress={() => {
            void navigator.clipboard?.writeText(text).then(() => announce(t().ui.copied))
          }}
        >
          {t().ui.copy('')}
        </Button>
        <Button onPress={() => download(text)}>{t().factor.download}</Button>
        <Button onPress={() => print()}>{t().factor.print}</Button>
      </Row>
      <Checkbox label={t().factor.kept} isOn={isKept} onChange={setKept} />
      <Button kind="primary" isWide why={isKept ? undefined : t().factor.kept} onPress={onKept}>
        {t().factor.continue}
      </Button>
    </div>
  )
}

function download(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = 'svccloud-recovery-codes.txt'
  link.click()
  URL.revokeObjectURL(url)
}
