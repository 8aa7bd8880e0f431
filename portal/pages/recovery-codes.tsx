/** Recovery codes: shown once, to copy, download or print. */
import { type ReactNode, useState } from 'react'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox } from '../ui/field.tsx'
import { Row } from '../ui/layout.tsx'
import { saveFile } from '../ui/save-file.ts'
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
        <Button onPress={() => saveFile('svccloud-recovery-codes.txt', 'text/plain', [text])}>
          {t().factor.download}
        </Button>
        <Button onPress={() => print()}>{t().factor.print}</Button>
      </Row>
      <Checkbox label={t().factor.kept} isOn={isKept} onChange={setKept} />
      <Button kind="primary" isWide why={isKept ? undefined : t().factor.kept} onPress={onKept}>
        {t().factor.continue}
      </Button>
    </div>
  )
}
