"""Records: decisions as other programs write them: CSV, FHIR R4 and ISO/IEC TS 27560."""
